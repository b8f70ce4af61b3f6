job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      resources {
        cpu = 100
      }

      resources {
        memory = 100
      }
    }
  }
}
