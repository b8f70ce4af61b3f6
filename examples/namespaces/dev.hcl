# A namespace with rules: kafila namespace apply examples/namespaces/dev.hcl
# Jobs use it with namespace = "dev", or with the flag -namespace=dev.
name        = "dev"
description = "For trying out"

# Notes of your own.
meta {
  owner = "sre"
}

# Allowed task drivers. Left out: all.
capabilities {
  enabled_task_drivers = ["raw_exec", "mock_driver"]
}

# Allowed node pools. Jobs that name no pool are in the default one, which is always allowed; a star
# matches any text. Use either 'allowed' or 'denied'.
node_pool_config {
  default = "default"
  allowed = ["dev-*"]
}
