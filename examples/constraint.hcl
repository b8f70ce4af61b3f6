# A job that runs only on nodes with certain attributes.

job "constraint" {
  # Every node reports its attributes: kernel, CPU, drivers (kafila node status -verbose shows them).
  # A constraint compares an attribute with a value; nodes that fail it are never chosen.
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "here" {
    # A job, a group and a task may have constraints. Operators other than "=" are named; this one
    # is a regular expression.
    constraint {
      attribute = "${attr.kernel.name}"
      operator  = "regexp"
      value     = "^(linux|freebsd)$"
    }

    update {
      min_healthy_time = "1s"
    }

    task "uname" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "uname -s; exec sleep infinity"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
