# A job that the clock launches: each time a child of it runs once.

job "periodic" {
  type = "batch"

  periodic {
    # minute, hour, day of the month, month, day of the week
    cron      = "*/15 * * * *"
    time_zone = "Europe/Berlin"

    # A launch that is due while the last one is still at work is left out.
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

      # The little that it prints needs no more than this, in MB.
      logs {
        max_files     = 2
        max_file_size = 1
      }
    }
  }
}
