# A system job, which runs on every node: for agents, such as one that ships logs.

job "system" {
  # A system job runs once on every feasible node, including nodes that join later.
  # ("sysbatch" is the same for work that ends.)
  type = "system"

  group "agent" {
    # Rolling update: a new version replaces the old one on one node after the other.
    update {
      max_parallel     = 1
      min_healthy_time = "1s"
      healthy_deadline = "30s"
    }

    task "watch" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          while true; do
            echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
            sleep 1
          done
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
