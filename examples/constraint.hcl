# A job that runs only on machines with certain attributes.

job "constraint" {
  # Every machine reports what it is: its kernel, its CPU, its drivers (kafila node status shows
  # them). A constraint compares one of these attributes with a value; a machine that fails the
  # test is never chosen.
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "here" {
    # Constraints may stand in the job, in a group, or in a task. Other operators than "=" are
    # written out; this one is a regular expression.
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
