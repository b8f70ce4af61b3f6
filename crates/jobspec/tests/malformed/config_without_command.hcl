job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        args = ["-c", "true"]
      }
    }
  }
}
