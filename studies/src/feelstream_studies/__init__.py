"""The studies of this repository: each has a folder with its arms, claims, figures, pages and commands.

They use what studies of other packages would: `feelstream.studies` and what it is made of. None knows another.
"""
