"""What a team's tickets add up to, for the people who may see them."""
