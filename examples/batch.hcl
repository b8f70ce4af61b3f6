# A batch job: it does its work and ends.

job "batch" {
  # A batch job is complete when its tasks have succeeded.
  # Failed allocations are placed again on other nodes.
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

      # Small logs, in MB.
      logs {
        max_files     = 2
        max_file_size = 1
      }
    }
  }
}
