"""`python -m feelstream` is the command `feelstream`."""

from feelstream.start import main

if __name__ == "__main__":
    main()
