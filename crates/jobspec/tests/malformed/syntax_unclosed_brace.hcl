job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"
    }
  }
