"""How numbers and curves are shown: words and units of quantities, colours and dashes, and what all figures share."""
