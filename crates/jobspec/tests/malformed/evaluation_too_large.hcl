locals {
  n0 = range(1000)
  n1 = range(1000)
  n2 = range(1000)
}

job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      env {
        A = jsonencode([for a in local.n0 : [for b in local.n1 : [for c in local.n2 : 1]]])
      }
    }
  }
}
