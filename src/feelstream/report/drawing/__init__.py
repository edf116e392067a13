"""Pictures for print: matplotlib figures in the style of a paper."""
