"""Prints numbered lines of 100 bytes. usage: lines.py flushed|buffered COUNT FILE

Flushed, it writes each line by itself, as loggers do, else as Python divides what is printed. FILE gets when it began.
"""

import sys
import time

how, count, begun = sys.argv[1:]
with open(begun, "w", encoding="ascii") as file:
    file.write(str(time.time()))
for number in range(int(count)):
    print(f"line {number} ".ljust(99, "."), flush=how == "flushed")
