# Two groups in one job: placed independently, run and updated together.

job "two-groups" {
  # Defaults for both groups.
  update {
    min_healthy_time = "1s"
    healthy_deadline = "30s"
  }

  group "producer" {
    count = 2

    task "produce" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while :; do date +%s; sleep 1; done"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }

  group "consumer" {
    # A task with a lifecycle hook: this one runs before the main task, which starts after its
    # success.
    task "prepare" {
      driver = "raw_exec"

      lifecycle {
        hook = "prestart"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo ready > \"${NOMAD_ALLOC_DIR}/ready\"; echo prepared"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }

    task "consume" {
      driver = "raw_exec"

      # How long the task gets to end by itself when it is stopped, before it is killed.
      kill_timeout = "2s"

      config {
        command = "/bin/sh"
        args    = ["-c", "cat \"${NOMAD_ALLOC_DIR}/ready\"; exec sleep infinity"]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
