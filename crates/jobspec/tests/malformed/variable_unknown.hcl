variable "count" {
  default = 1
}

job "web" {
  group "server" {
    count = var.cuont
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
