job "example" {
  group "web" {
    network {
      port "http" {}
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = "/usr/bin/python3"
        args    = ["-u", "-m", "http.server", "--bind", "${NOMAD_IP_http}", "${NOMAD_PORT_http}"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
