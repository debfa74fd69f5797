"""Tasks that only a task group makes."""
