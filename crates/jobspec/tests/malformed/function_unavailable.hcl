job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      env {
        A = timestamp()
        B = rsadecrypt("x", "")
      }
    }
  }
}
