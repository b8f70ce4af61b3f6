variable "count" {
  type = "number"
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
