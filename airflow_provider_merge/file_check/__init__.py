"""The command ``check``: what of people's SQL files runs here, without a task and without Spark."""
