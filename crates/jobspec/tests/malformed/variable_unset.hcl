variable "count" {
  type = number
}

job "web" {
  group "server" {
    count = var.count
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
