# A job that does its work and ends.

job "batch" {
  # A batch job is done when its tasks have ended well; nothing starts them again.
  # It is placed again, elsewhere, only when it fails.
  type = "batch"

  group "count" {
    task "count" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          for n in $(seq 1 5); do
            echo "counted to $n"
            sleep 0.2
          done
          echo "done"
        EOT
        ]
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
