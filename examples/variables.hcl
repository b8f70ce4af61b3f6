# A job file with inputs.
#
#   kafila job run -var count=3 -var 'names=["Ada", "Grace"]' variables.hcl
#   NOMAD_VAR_greeting=Salaam kafila job run variables.hcl
#
# A file with values is given with -var-file.

variable "count" {
  type        = number
  default     = 2
  description = "Number of greeters."

  validation {
    condition     = var.count >= 0 && var.count <= 10
    error_message = "count must be between 0 and 10"
  }
}

variable "greeting" {
  type    = string
  default = "Hello"
}

variable "names" {
  type    = list(string)
  default = ["caravan", "world"]
}

# Locals are named values that may refer to variables and each other, in any order.
locals {
  lines = [for name in var.names : format("%s, %s!", var.greeting, title(name))]
  text  = join("\n", local.lines)

  # Settings that become environment variables below.
  settings = {
    GREETING = upper(var.greeting)
    NAMES    = jsonencode(var.names)
  }
}

job "variables" {
  group "greeter" {
    count = var.count

    update {
      max_parallel     = 2
      min_healthy_time = "1s"
    }

    task "greet" {
      driver = "raw_exec"

      # A map, built from two: written with "=" since it is computed.
      env = merge(local.settings, { TEXT = local.text })

      config {
        command = "/bin/sh"

        # What stands in ${…} and is no variable or local here is left for the machine to fill in.
        args = ["-c", "echo \"greeter ${NOMAD_ALLOC_INDEX} of ${var.count}:\"; echo \"$TEXT\"; exec sleep infinity"]
      }

      resources {
        cpu    = 20
        memory = max(16, 8 * length(var.names))
      }
    }
  }
}
