# Applies a cluster by Kubernetes' client, lists it, and prints each change of a label that it sees of all clusters.
import os, sys
from kubernetes import client, watch
settings = client.Configuration(host=os.environ["SERVER"])
settings.ssl_ca_cert = os.environ["CA"]
settings.api_key = {"authorization": "Bearer " + os.environ["TOKEN"]}
objects = client.CustomObjectsApi(client.ApiClient(settings))
kind = dict(group="heliostat.dev", version="v1beta1", plural="computeclusters", namespace=os.environ["NAMESPACE"])
cluster = {"apiVersion": "heliostat.dev/v1beta1", "kind": "ComputeCluster", "metadata": {"name": "by-python"}, "spec": {"rayVersion": "2.60.0", "suspend": True}}
objects.patch_namespaced_custom_object(name="by-python", body=cluster, field_manager="python", _content_type="application/apply-patch+yaml", **kind)
listed = objects.list_namespaced_custom_object(**kind)
assert "by-python" in [one["metadata"]["name"] for one in listed["items"]], listed
print("ready", flush=True)
for event in watch.Watch().stream(objects.list_namespaced_custom_object, resource_version=listed["metadata"]["resourceVersion"], **kind):
    print(event["object"]["metadata"].get("labels", {}).get("{{.Label}}", ""), flush=True)
