job "web" {
  group "server" {
    task "http" {
      driver = "raw-exec"
    }
  }
}
