# A file and variables that the node renders before each start of the task.
#
#   kafila job run examples/template.hcl

job "template" {
  group "server" {
    network {
      port "http" {}
    }

    task "serve" {
      driver = "raw_exec"

      # Below the task's directory, which is the working directory of raw_exec.
      template {
        destination = "local/server.conf"
        data        = <<-EOF
          listen = {{ env "NOMAD_IP_http" }}:{{ env "NOMAD_PORT_http" }}
          {{- range $name, $weight := parseJSON "{\"a\": 1, \"b\": 2}" }}
          backend {{ $name }} weight {{ $weight }}
          {{- end }}
        EOF
      }

      # The lines of this file become variables of the task.
      template {
        destination = "secrets/server.env"
        perms       = "0600"
        env         = true
        data        = <<-EOF
          GREETING="Hello from {{ env "NOMAD_TASK_NAME" | toUpper }}"
        EOF
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo $GREETING; cat local/server.conf; exec sleep 3600"]
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
