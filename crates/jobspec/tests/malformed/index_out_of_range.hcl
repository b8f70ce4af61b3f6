locals {
  ports = [80, 443]
}

job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      env {
        A = local.ports[2]
        B = local.ports.http
      }
    }
  }
}
