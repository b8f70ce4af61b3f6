# A periodic job: each launch runs a child once.

job "periodic" {
  type = "batch"

  periodic {
    # minute, hour, day of the month, month, day of the week
    cron      = "*/15 * * * *"
    time_zone = "Europe/Berlin"

    # Skips a launch while the previous child is running.
    prohibit_overlap = true
  }

  group "tidy" {
    task "tidy" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"launched by $NOMAD_JOB_PARENT_ID at $(date)\""]
      }

      resources {
        cpu    = 20
        memory = 16
      }

      # Small logs, in MB.
      logs {
        max_files     = 2
        max_file_size = 1
      }
    }
  }
}
