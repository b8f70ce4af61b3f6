locals {
  names = ["a", "b"]
}

job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      env {
        A = "names: ${local.names}"
      }
    }
  }
}
