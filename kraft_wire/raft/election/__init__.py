"""Elections: campaigns, votes and changes of role."""
