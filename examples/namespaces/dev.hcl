# A namespace with rules: kafila namespace apply examples/namespaces/dev.hcl
# Jobs are in it that say namespace = "dev", or are run with -namespace=dev.
name        = "dev"
description = "For trying out"

# Whatever you want to keep with it.
meta {
  owner = "sre"
}

# What tasks may use. Left out: everything that nodes have.
capabilities {
  enabled_task_drivers = ["raw_exec", "mock_driver"]
}

# Where its jobs may run. Jobs that name no node pool are in the default one, which is always
# allowed; a star stands for anything. Instead of 'allowed' there may be 'denied'.
node_pool_config {
  default = "default"
  allowed = ["dev-*"]
}
