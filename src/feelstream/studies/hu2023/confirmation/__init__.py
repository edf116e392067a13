"""The paper's claims on seeds that nothing else has touched: two specifications under both readings of fresh data."""
