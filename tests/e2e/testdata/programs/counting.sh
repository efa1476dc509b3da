python -c "
import sys, time
for i in range({{.Lines}}):
    sys.stdout.buffer.write(b'line %d \xc3\xa9 \xff \r tab\t.\n' % i)
    if i % {{.AtOnce}} == 0:
        sys.stdout.buffer.flush(); time.sleep(0.3)
"
