"""``python -m distreduce``: the command ``distreduce``."""

from distreduce.cli import main

if __name__ == "__main__":
    main()
