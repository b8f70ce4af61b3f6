job "web" {
  group "server" {
    network {
      dynamic "port" {
        for_each = ["a"]
      }
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
