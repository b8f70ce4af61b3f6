# A service that keeps its files on one node: it waits until the volume "data" is registered there
# (volume.hcl), and comes back to it whatever happens.

job "db" {
  group "server" {
    volume "files" {
      type   = "host"
      source = "data"

      # Nobody else may write to it meanwhile.
      access_mode = "single-node-single-writer"
      # Replacements go where this volume is, even if another node has one of the same name.
      sticky = true
    }

    task "write" {
      driver = "raw_exec"

      # The task finds the directory in KAFILA_VOLUME_<name>.
      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          echo "started" >> "$KAFILA_VOLUME_files/log"
          echo "writing to $KAFILA_VOLUME_files"
          exec sleep 1000
        EOT
        ]
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
