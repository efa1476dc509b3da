#!/bin/sh
# Notes in a file when a process begins. With an index and seconds it runs until it is ended, but process 0 fails after as many
# seconds, and notes when. usage: times.sh FILE [INDEX SECONDS]
set -eu
trap 'exit 143' TERM # it may be process 1 of a pod
echo "began $(date +%s.%N)" >>"$1"
[ $# = 3 ] || exit 0
if [ "$2" = 0 ]; then
  sleep "$3" &
  wait $!
  echo "failed $(date +%s.%N)" >>"$1"
  exit 3
fi
sleep 1000000 &
wait $!
