"""What both sides of the provider must know of a table format, once."""
