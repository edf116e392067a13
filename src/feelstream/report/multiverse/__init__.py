"""The multiverse in pictures and words: a specification curve for each claim, and the page that tells of them."""
