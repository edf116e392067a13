"""How numbers and curves are shown: words and units of quantities, colours and dashes, charts and their figures."""
