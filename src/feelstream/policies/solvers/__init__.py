"""How several policies choose sets, split the band, and choose frequencies, shares and powers together.

docs/joint.md derives the joint solution: devices (one set's problem) → allocation → modes → search → joint (a round).
"""
