# A service with files on one node: it waits until the volume "data" is registered (volume.hcl), and
# its replacements return to it.

job "db" {
  group "server" {
    volume "files" {
      type   = "host"
      source = "data"

      # Excludes other writers.
      access_mode = "single-node-single-writer"
      # Replacements use this volume, even if another node has one with the same name.
      sticky = true
    }

    task "write" {
      driver = "raw_exec"

      # The task reads the directory's path from KAFILA_VOLUME_<name>.
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
