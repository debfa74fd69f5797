"""The script that spark-submit runs: the command line of ``spark_jobs.command``."""

from __future__ import annotations

import sys

from spark_jobs.python_path import forget_archives

if __name__ == "__main__":
    forget_archives()
    from spark_jobs.command import main

    sys.exit(main())
