"""Ends a program with its input: a test that is over leaves no process behind."""

import os
import sys
import threading


def end_with_input():
    """Starts a thread that ends the process as soon as its standard input is closed."""

    def watch():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
