"""The leaderboard: every policy on several scenarios."""
