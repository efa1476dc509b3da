#!/bin/sh
# Runs a process of a gang under a lock of its own, and notes each process of another round that runs still. The lock is the
# program's and its descendants': it goes with the last of them. The nodes of the local Kubernetes share one kernel and this
# directory, so no node that is cut off hides a process.
set -eu
mkdir -p "$CHECKPOINT_DIR/locks"
cd "$CHECKPOINT_DIR"
exec 9>"locks/$HELIOSTAT_ROUND.$ROLE-$ROLE_INDEX"
flock --exclusive 9
for other in locks/*; do
  case $other in
    locks/"$HELIOSTAT_ROUND".*) ;;
    *) flock --shared --nonblock "$other" true || echo "$HELIOSTAT_ROUND $ROLE/$ROLE_INDEX beside $other" >>overlaps ;;
  esac
done
echo "$HELIOSTAT_ROUND $ROLE/$ROLE_INDEX $(hostname) $$" >>began
exec "$@"
