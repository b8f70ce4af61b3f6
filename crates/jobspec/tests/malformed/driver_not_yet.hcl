job "web" {
  group "server" {
    task "http" {
      driver = "exec"

      config {
        command = "redis"
      }
    }
  }
}
