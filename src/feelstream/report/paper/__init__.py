"""The paper, judged: its claims, the evidence for each, and the pages that tell of it."""
