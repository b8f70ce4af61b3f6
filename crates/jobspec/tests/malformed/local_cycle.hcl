locals {
  a = local.b
  b = "x${local.c}"
  c = local.a
}

job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
