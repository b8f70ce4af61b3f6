job "web" {
  type = "ser\vice"
}
