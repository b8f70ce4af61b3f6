# A variable: a named set of texts, which the store keeps encrypted.
# Store it with: kafila var put @spec.nv.hcl

# 1 to 128 letters, digits, "-", "_", "~" and "/". The tasks of the job "web" read nomad/jobs/web and
# the paths below it, their own group and task, without further rights.
path = "nomad/jobs/web"

# The default namespace, if left out.
# namespace = "default"

# Replace a stored variable only if its modify index is this one.
# modify_index = 121

items {
  user     = "web"
  password = "change me"
}
