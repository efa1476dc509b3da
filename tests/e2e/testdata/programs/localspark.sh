# Runs an application in Spark's local-cluster mode, with two executors. usage: localspark.sh OPTION... PROGRAM ARGUMENT...
# The Workers of that mode write below SPARK_HOME, and the image's own is read-only: a directory of links takes its place.
# spark-submit ignores --executor-memory in that mode, but not the setting.
set -eu
installed=$(python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
SPARK_HOME=$(mktemp -d)
export SPARK_HOME
ln -s "$installed"/* "$SPARK_HOME"
exec spark-submit --master 'local-cluster[2,1,616]' --conf spark.executor.memory=512m "$@"
